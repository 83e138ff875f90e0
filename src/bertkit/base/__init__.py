"""The ground floor: errors, durable files, strict settings, progress; imports no other room."""
