"""An airline's customer service: recorded sessions of real models, replayed through real worker pools."""
