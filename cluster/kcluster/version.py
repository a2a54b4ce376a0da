"""The version of this package, for the build and for run directories.

Owns: `__version__`.  Never: imports anything: the package itself imports this.
Kafka: AppInfoParser.
"""

__version__ = "0.1.0"
