# A virtual machine of a cloud, by the command that the operator names: it gets the inputs in its environment.
resource "terraform_data" "machine" {
  input            = { name = var.name, ip = var.ip_hint }
  triggers_replace = [var.name, var.image]

  provisioner "local-exec" {
    command     = "\"$${PLATFORM_MACHINE_COMMAND:?names the program that makes machines of your cloud}\" create"
    quiet       = true
    environment = { MACHINE_NAME = var.name, MACHINE_IP = var.ip_hint, MACHINE_IMAGE = var.image, MACHINE_ENV = var.env_file, MACHINE_JOIN = var.join }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "\"$${PLATFORM_MACHINE_COMMAND:?names the program that makes machines of your cloud}\" destroy"
    quiet       = true
    environment = { MACHINE_NAME = self.output.name }
  }
}

output "ip" {
  value = terraform_data.machine.output.ip
}

output "id" {
  value = terraform_data.machine.output.name
}
