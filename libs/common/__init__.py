"""What two or more services share: the domain, the bus, the schema and the ports to the outside."""
