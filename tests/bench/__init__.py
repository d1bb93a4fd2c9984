"""Ratios, not seconds: what gpuready costs beside the least that SSH itself costs."""
