"""What tests of several services share. Never imported by a service."""
