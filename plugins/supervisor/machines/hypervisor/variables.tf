variable "name" {
  type = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,62}$", var.name))
    error_message = "A name has 1 to 63 characters of a-z, 0-9 and hyphens."
  }
}

variable "ip_hint" {
  type = string
}

variable "image" {
  type = string
}

variable "env_file" {
  type      = string
  sensitive = true
}

variable "join" {
  type      = string
  sensitive = true
}
