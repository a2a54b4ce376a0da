"""The work of `kcluster simulate`: whole programs in virtual time, beside a scenario."""
