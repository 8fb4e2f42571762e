"""Remote links: which record of a provider is which record of the application, and under whose authority."""
