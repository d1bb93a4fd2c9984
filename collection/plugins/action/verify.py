"""The action ``gpuready.node.verify``; plugins/modules/verify.py describes it."""

from ansible_collections.gpuready.node.plugins.plugin_utils.run import GpureadyAction


class ActionModule(GpureadyAction):
    verb = "verify"
    checking = "verify"
