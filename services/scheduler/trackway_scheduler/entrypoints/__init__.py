"""gRPC services: messages in, commands and states, messages out."""
