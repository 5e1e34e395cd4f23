import type { BodyIntake } from '../body-intake.ts';
import { isPrivate } from '../connections/private-source.ts';
import type { Ctx } from '../context.ts';
import { challengeDoor } from './challenge-door.ts';
import { ManagementDoor } from './management-door.ts';
import { PlainListener } from './plain-listener.ts';

const HTTP_PORT = 80;

/** The port of ACME challenges, where it is asked for, or this is production (ING-011). One that nobody asked for and that is not free is told of. */
export async function openChallenges(ctx: Ctx): Promise<void> {
  const { httpPort, address } = ctx.config;
  const port = httpPort ?? (ctx.platform.production ? HTTP_PORT : 0);
  if (port === 0) return;
  const listener = new PlainListener((req, res) => void challengeDoor(ctx, req, res));
  try {
    await listener.listen(port, address);
    ctx.own(listener);
  } catch (error) {
    const { message } = error as Error;
    if (httpPort !== undefined) throw new Error(`the port of ACME challenges cannot be opened: ${message}. Set PLATFORM_PROXY_HTTP_PORT to a free one, or to 0.`);
    ctx.log.error({ port, err: error }, 'the port of ACME challenges cannot be opened: certificates of names outside cannot be had. Set PLATFORM_PROXY_HTTP_PORT.');
  }
}

/** The management plane: plain HTTP for peers inside alone, others are cut at accept (ING-022, C28). In development a port that is taken gives way to a free one. */
export async function openManagement(ctx: Ctx, bodies: BodyIntake): Promise<void> {
  const { managementPort, managementAddress } = ctx.config;
  const door = new ManagementDoor(ctx, bodies);
  const open = async (port: number) => {
    const listener = new PlainListener(
      (req, res) => void door.answer(req, res),
      ({ remoteAddress }) => isPrivate(remoteAddress),
    );
    await listener.listen(port, managementAddress);
    ctx.own(listener);
    return listener.port;
  };
  try {
    await open(managementPort);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (ctx.platform.production || code !== 'EADDRINUSE') throw new Error(`the management port ${managementPort} cannot be opened: ${message}. Set PLATFORM_PROXY_MANAGEMENT_PORT to a free one.`);
    ctx.log.warn({ wanted: managementPort, port: await open(0) }, 'the management port of the ingress is taken; another one serves in its place');
  }
}
