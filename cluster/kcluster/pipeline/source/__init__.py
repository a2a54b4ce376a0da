"""The Python Data Source `format("kcluster")`: topics as DataFrames, without a jar.

from kcluster.pipeline.source.register import register
register(spark)
spark.read.format("kcluster").option("kafka.bootstrap.servers", …).option("subscribe", "orders")
"""
