"""The Agent User Interaction Protocol 1.0 (AG-UI): what CopilotKit and `@ag-ui/client` speak."""
