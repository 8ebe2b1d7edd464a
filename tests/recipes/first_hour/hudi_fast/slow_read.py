# A read of few rows takes long. See what it reads, and why.
import hudi_fast as hf

wanted = "fare > 999"
table = hf.HudiTable("many_fares")
hf.show(table.explain(wanted))  # the last row: how many files are read, and why no index leaves more out
before = len(table.files(wanted))

# Each file has all kinds of fares. Sort the rows by the column of the filter.
table.services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "fare"})

hf.show(table.explain(wanted))
print((before, len(table.files(wanted)), table.count(wanted)))
