"""Did a run keep Kafka's promises?  invariants.py looks at the nodes, history.py at what clients
saw; neither asks the code under test what is right."""
