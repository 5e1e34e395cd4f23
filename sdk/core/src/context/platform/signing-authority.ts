export interface LeafOrder {
  readonly hierarchy: 'pq' | 'classical';
  readonly commonName: string;
  /** `dns:name`, `ip:1.2.3.4` or `uri:urn:…`. */
  readonly names: readonly string[];
  readonly usages: readonly ('server' | 'client')[];
  readonly days: number;
  readonly csr?: string;
  /** Exact instants instead of `days`, never beyond the issuer's own end. */
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}
export interface IssuedCertificate {
  readonly certificate: string;
  /** Leaf first, root left out. */
  readonly chain: string;
  /** Only when no CSR was given; kept nowhere. */
  readonly key: string | undefined;
  readonly serial: string;
  readonly thumbprint: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}
/** The hierarchies' signing keys behind two questions. */
export interface SigningAuthority {
  readonly anchors: {
    readonly pq: { readonly root: string; readonly intermediate: string };
    readonly classical: { readonly root: string; readonly intermediate: string };
  };
  /** Which hierarchy would sign this CSR, and what it names; `undefined` with the reason when it cannot be honoured. */
  readCsr(csr: string): Promise<
    | {
        readonly hierarchy: 'pq' | 'classical';
        readonly commonName: string | undefined;
        readonly names: readonly string[];
        readonly publicKeyPem: string;
      }
    | { readonly refused: string }
  >;
  issue(order: LeafOrder): Promise<IssuedCertificate>;
}
