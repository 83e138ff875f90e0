"""bertkit in LangChain and in Haystack, whose packages are extras; nothing else imports it."""
