"""One replica of one partition: its log, leader epochs, producers, role and ISR.

Owns: a broker's state of a partition.  Never: sends or receives anything (kcluster.broker does).
"""
