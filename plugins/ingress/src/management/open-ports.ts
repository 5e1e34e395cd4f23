import type { BodyIntake } from '../body-intake.ts';
import { isPrivate } from '../connections/private-source.ts';
import type { Ctx } from '../context.ts';
import { challengeDoor } from './challenge-door.ts';
import { ManagementDoor } from './management-door.ts';
import { type PlainDoor, PlainListener } from './plain-listener.ts';

const HTTP_PORT = 80;
const AGAIN_MS = 1_000;

/**
 * The port of ACME challenges, where it is asked for, or this is production (ING-011). One that nobody asked for and that may not be opened
 * is told of.
 */
export async function openChallenges(ctx: Ctx): Promise<void> {
  const { httpPort, address } = ctx.config;
  const port = httpPort ?? (ctx.platform.production ? HTTP_PORT : 0);
  if (port === 0) return;
  await openWhenFree(ctx, () => new PlainListener((req, res) => void challengeDoor(ctx, req, res)), {
    door: 'challenges',
    port,
    address,
    setting: 'PLATFORM_PROXY_HTTP_PORT',
  }).catch(error => {
    if (httpPort !== undefined) throw error;
    ctx.log.error({ port, err: error }, 'certificates of names outside cannot be had');
  });
}

/** The management plane: plain HTTP for peers inside alone, others are cut at accept (ING-022, C28). */
export async function openManagement(ctx: Ctx, bodies: BodyIntake): Promise<void> {
  const { managementPort: port, managementAddress: address } = ctx.config;
  const door = new ManagementDoor(ctx, bodies);
  const make = () =>
    new PlainListener(
      (req, res) => void door.answer(req, res),
      ({ remoteAddress }) => isPrivate(remoteAddress),
    );
  await openWhenFree(ctx, make, { door: 'management', port, address, setting: 'PLATFORM_PROXY_MANAGEMENT_PORT' });
}

/**
 * Opens a port. While another instance has it, which this one may be there to follow, it is tried again every second; what is refused for
 * good throws.
 */
async function openWhenFree(
  ctx: Ctx,
  make: () => PlainListener,
  { door, port, address, setting }: { readonly door: PlainDoor; readonly port: number; readonly address: string; readonly setting: string },
): Promise<void> {
  const open = async (): Promise<boolean> => {
    const listener = make();
    try {
      await listener.listen(ctx, door, { port, address });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'EADDRINUSE') return false;
      throw new Error(`the port ${port} of the ingress cannot be opened: ${message}. Set ${setting} to a free one.`, { cause: error });
    }
    ctx.own(listener);
    return true;
  };
  if (await open()) return;
  ctx.log.warn({ port, setting }, 'a port of the ingress is taken; it is tried again every second');
  const trying = ctx.every(AGAIN_MS, async () => {
    if (await open().catch(() => false)) trying[Symbol.dispose]();
  });
  ctx.own(trying);
}
