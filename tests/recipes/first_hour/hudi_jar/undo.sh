spark-submit \
    --packages org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0 \
    --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
    --conf spark.kryo.registrator=org.apache.spark.HoodieSparkKryoRegistrar \
    --conf spark.sql.extensions=org.apache.spark.sql.hudi.HoodieSparkSessionExtension \
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.hudi.catalog.HoodieCatalog \
    undo.py
