"""The verbs of `kcluster pipeline`: one module per verb, imported when the verb is called."""
