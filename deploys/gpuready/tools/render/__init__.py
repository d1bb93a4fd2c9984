"""Documents for other systems: monitoring, schedulers, first boots, cloud jobs."""
