# A container on the network of this host, at the address of the hint. What is secret goes over the environment of the command alone.
resource "terraform_data" "machine" {
  input            = { name = var.name, ip = var.ip_hint }
  triggers_replace = [var.name, var.image]

  provisioner "local-exec" {
    command     = "${path.module}/container.sh create"
    quiet       = true
    environment = { MACHINE_NAME = var.name, MACHINE_IP = var.ip_hint, MACHINE_IMAGE = var.image, MACHINE_ENV = var.env_file, MACHINE_JOIN = var.join }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "${path.module}/container.sh destroy"
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
