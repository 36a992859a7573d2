"""What this project is made of: licences, known vulnerabilities, a bill of materials, digests of what is fetched."""
