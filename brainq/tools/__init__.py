"""Tools: functions a model may call, what is known of each, and what a running one is given.

def ──schema──► Tool(spec, function) ──► ToolRegistry ──specs──► gates, scheduler, model
                     └── bind(JSON arguments) ──► the keywords the function is called with
"""
