# A virtual machine of libvirt. Its invitation and its environment file are on a seed image that only the hypervisor reads.
resource "terraform_data" "machine" {
  input            = { name = var.name, ip = var.ip_hint }
  triggers_replace = [var.name, var.image]

  provisioner "local-exec" {
    command     = "${path.module}/hypervisor.sh create"
    quiet       = true
    environment = { MACHINE_NAME = var.name, MACHINE_IP = var.ip_hint, MACHINE_IMAGE = var.image, MACHINE_ENV = var.env_file, MACHINE_JOIN = var.join }
  }

  provisioner "local-exec" {
    when        = destroy
    command     = "${path.module}/hypervisor.sh destroy"
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
