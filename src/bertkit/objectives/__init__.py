"""Pre-training objectives: how examples are planned, corrupted and scored.

`OBJECTIVES` maps a name to the class that does it.
"""

OBJECTIVES = {"bert": "bertkit.objectives.bert:BertObjective"}
