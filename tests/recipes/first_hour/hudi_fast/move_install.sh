# Into the environment of the job, which has PySpark.
pip install --quiet "$HUDI_FAST[spark]"    # hudi-fast[spark]
