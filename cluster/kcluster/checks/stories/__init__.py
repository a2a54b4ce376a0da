"""Parts of stories that several anomalies share."""
