# The job is as before, with two lines more. Say first whether its options are honoured.
hudi-fast check --options move_job.properties
spark-submit move_job.py
