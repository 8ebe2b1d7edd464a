# The newest write was wrong. Look at the writes, then at what the newest one changed.
import hudi_fast as hf

table = hf.HudiTable("fares")
hf.show(table.history())
before, wrong = table.history()["instant"].to_pylist()[-2:]
hf.show(table.diff(before, columns=["id", "fare", "change"]).slice(0, 5))

# Undo it.
table.services.rollback(wrong)

fares = table.to_arrow(["fare"])["fare"].to_pylist()
print((len(fares), sum(fares)))
