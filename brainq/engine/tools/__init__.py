"""Tools: functions that a model may call, their specs, and the context of a running one.

def ──schema──► Tool(spec, function) ──► ToolRegistry ──specs──► gates, scheduler, model
                     └── bind(JSON arguments) ──► the keywords the function is called with
"""
