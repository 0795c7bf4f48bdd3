"""The questions of queries.sql for Spark: spark-submit spark.py fleet.parquet"""
import sys

from pyspark.sql import SparkSession, functions as f

spark = SparkSession.builder.appName("lull-fleet").getOrCreate()
rows = spark.read.parquet(sys.argv[1])

rows.where("cause is not null").groupBy("cause").agg(
    (f.sum("lost_ns") / 3.6e12).alias("hours"), f.countDistinct("job").alias("jobs")
).orderBy(f.desc("hours")).show(40, False)

reports = rows.where("state = 'good'").groupBy("file").agg(
    f.first("job").alias("job"), f.first("gpu_ns").alias("gpu_ns"), f.sum("lost_ns").alias("lost_ns"))
reports.groupBy("job").agg(
    f.count("*").alias("reports"), (f.sum("gpu_ns") / 3.6e12).alias("gpu_hours"),
    (f.sum("lost_ns") / 3.6e12).alias("lost_hours")
).orderBy(f.desc("lost_hours")).show(20, False)
