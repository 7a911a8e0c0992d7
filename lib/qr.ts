import { Lazy } from './lazy.ts'

/** A QR code: its modules on each side, and the dark ones as the path of an SVG. */
export interface QrCode { size: number, path: string }

// Loaded when somebody adds an authenticator app.
const library = new Lazy(async () => await import('uqr'))

/** Modules of white around the code (ISO/IEC 18004). */
const BORDER = 4

export async function toQrCode (text: string): Promise<QrCode> {
  const { encode } = await library.get()
  const { size, data } = encode(text, { ecc: 'M', border: BORDER })
  const runs = data.flatMap((row, y) => row.map((isDark, x) => isDark ? `M${x} ${y}h1v1h-1z` : ''))
  return { size, path: runs.join('') }
}
