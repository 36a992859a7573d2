"""Dependencies of this project: licences, known vulnerabilities, a bill of materials, digests of downloads."""
