"""The verbs of `kcluster`: one module per verb, imported when the verb is called."""
