"""The manifests of `ops/kubernetes/*.yaml`, rendered from the chart `ops/helm/brainq`, and helm, which renders them."""
