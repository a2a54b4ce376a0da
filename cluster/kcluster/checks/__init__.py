"""What is judged: anomalies with their causes, availability, the verdict."""
