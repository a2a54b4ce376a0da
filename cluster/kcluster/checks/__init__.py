"""The judgement of a run: anomalies with their causes, availability, the verdict."""
