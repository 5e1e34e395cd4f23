import { SYSTEM } from '@platform/sdk';
import type { AccessModel } from './access/access-model.ts';
import { bumpAccess } from './access/access-version.ts';
import type { Ctx } from './context.ts';
import { PLATFORM_ADMIN } from './access/effective-access.ts';
import type { Passwords } from './people/passwords.ts';

const ADMIN_ROLE = 'platform:sys:admin';
const CONSOLE_ROLE = 'platform:console:user';

/** Initial records of a fresh platform: the console's group and role, and the administrator who must choose a password (G-SYS-04). */
export async function seed(ctx: Ctx, model: AccessModel, passwords: Passwords): Promise<void> {
  const [known] = await ctx.db.sql<object[]>`select 1 from users where user_id = ${SYSTEM.bootstrapUserId}`;
  const hash = known ? undefined : await oneTimePassword(ctx, passwords);
  const email = ctx.config.bootstrapEmail ?? `admin@${ctx.platform.zone}`;
  await ctx.db.tx(async tx => {
    await model.writeRole(tx, SYSTEM.envId, ADMIN_ROLE, [PLATFORM_ADMIN]);
    await tx.sql`insert into roles ${tx.sql.row({ role_id: SYSTEM.consoleRoleId, env_id: SYSTEM.envId, name: CONSOLE_ROLE })}
      on conflict do nothing`;
    await model.writeRole(tx, SYSTEM.envId, CONSOLE_ROLE, ['sys:read']);
    await tx.sql`insert into user_groups ${tx.sql.row({
      group_id: SYSTEM.consoleGroupId,
      env_id: SYSTEM.envId,
      name: SYSTEM.consoleGroup,
    })} on conflict do nothing`;
    await tx.sql`insert into group_roles ${tx.sql.row({ env_id: SYSTEM.envId, group_name: SYSTEM.consoleGroup, role: CONSOLE_ROLE })}
      on conflict do nothing`;
    if (!hash) return;
    await tx.sql`insert into users ${tx.sql.row({
      user_id: SYSTEM.bootstrapUserId,
      env_id: SYSTEM.envId,
      email,
      email_ci: email.toLowerCase(),
      email_verified: true,
      display_name: 'Administrator',
      must_change_password: true,
    })}
      on conflict do nothing`;
    await tx.sql`insert into passwords ${tx.sql.row({ user_id: SYSTEM.bootstrapUserId, hash })} on conflict do nothing`;
    await tx.sql`insert into user_roles ${tx.sql.row({ env_id: SYSTEM.envId, user_id: SYSTEM.bootstrapUserId, role: ADMIN_ROLE })}
      on conflict do nothing`;
    await tx.emit('platform:auth:user:created', SYSTEM.envId, { user_id: SYSTEM.bootstrapUserId, env_id: SYSTEM.envId });
    await tx.sql`insert into group_members ${tx.sql.row({
      membership_id: SYSTEM.bootstrapMembershipId,
      env_id: SYSTEM.envId,
      group_name: SYSTEM.consoleGroup,
      user_id: SYSTEM.bootstrapUserId,
    })} on conflict do nothing`;
  });
  await bumpAccess(ctx, [SYSTEM.envId]);
}

async function oneTimePassword(ctx: Ctx, passwords: Passwords): Promise<string | undefined> {
  const secret = ctx.config.bootstrapPasswordRef ? await ctx.secrets.read(ctx.config.bootstrapPasswordRef) : undefined;
  if (!secret) {
    ctx.log.error({}, 'no administrator exists and PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF names no readable secret; nobody can sign in');
    return undefined;
  }
  try {
    return await passwords.hash(Buffer.from(secret).toString('utf8').trim());
  } finally {
    secret.fill(0);
  }
}
