-- Mail of invitations is a task of the kernel now.
drop table mail_queue;
