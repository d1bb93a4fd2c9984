"""Tests between hosts: which there are, how they are scheduled, and how their figures are judged."""
