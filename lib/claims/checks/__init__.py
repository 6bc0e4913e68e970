"""The judges: one small function a claim, from the evidence to a verdict; one module a source.

The worklog's claims fill three modules, by subject. A claim's own figures (a T4, FP32 unless said)
stand beside the judge that examines them. A judge that misses a record lets
`lib.claims.evidence.Missing` through, and the ledger then says what is missing. The name of a judge
ends with its claim's id.
"""
