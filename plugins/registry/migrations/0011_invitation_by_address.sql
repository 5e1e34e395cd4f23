-- Whether somebody has a pending invitation is asked at every sign-in to the console by who is in no group yet (D-02).
create index invitations_by_address on invitations (lower(email)) where status = 'pending';
