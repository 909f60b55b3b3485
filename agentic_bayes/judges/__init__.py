"""Statistics of judges: agreement, calibration against human labels, ROC."""
