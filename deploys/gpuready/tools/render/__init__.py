"""What a monitoring system needs besides the exporter on the node: a dashboard, alert rules, where to scrape."""
