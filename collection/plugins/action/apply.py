"""The action ``gpuready.node.apply``; plugins/modules/apply.py describes it."""

from ansible_collections.gpuready.node.plugins.plugin_utils.run import GpureadyAction


class ActionModule(GpureadyAction):
    verb = "apply"
    checking = "plan"
