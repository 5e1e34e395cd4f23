/** One device of a person. Its token is for the provider alone: it is neither kept nor logged. */
export interface Device {
  readonly platform: 'ios' | 'android' | 'web';
  readonly token: string;
}

/** What goes out, as an adapter is given it. */
export interface Outgoing {
  readonly deliveryId: string;
  readonly notificationId: string;
  readonly envId: string;
  /** One address of the channel: an e-mail address, a telephone number, a postal address; the person, where it goes to devices. */
  readonly to: string;
  /** Push and web push: the devices it goes to. */
  readonly devices?: readonly Device[];
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The same at every try. */
  readonly messageId: string;
  /** How often it was tried before. */
  readonly tries: number;
}

/** What a gateway says of itself, without its secret. */
export interface GatewaySettings {
  readonly gateway_id: string;
  readonly channel: string;
  readonly gateway_url: string | null;
  readonly secret_ref: string | null;
  readonly config: {
    readonly from?: string;
    readonly simulate_failure?: { readonly mode: 'always' | 'first_n'; readonly n?: number; readonly error?: string };
  };
  readonly version: number;
  readonly private_ok: boolean;
}

/** A try that failed, in words that may be kept: never the secret, never more of the message than the provider's own refusal. */
export class DispatchFailure extends Error {
  /** The address itself is refused for good: it is tried no more, and suppressed. */
  readonly permanent: boolean;
  /** The provider did not answer in time, or not at all: it may be away for everybody. */
  readonly away: boolean;

  constructor(reason: string, { permanent = false, away = false }: { permanent?: boolean; away?: boolean } = {}) {
    super(reason.replaceAll(/\s+/g, ' ').slice(0, 500));
    this.permanent = permanent;
    this.away = away;
  }
}

/**
 * One way out. Throws a {@link DispatchFailure} when the message was not taken. The caller wipes `secret` after this has ended.
 */
export interface Adapter {
  readonly name: string;
  dispatch(outgoing: Outgoing, gateway: GatewaySettings, secret: Uint8Array | undefined, signal: AbortSignal): Promise<void>;
}
