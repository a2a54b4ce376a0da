"""What the stories of several anomalies share."""
