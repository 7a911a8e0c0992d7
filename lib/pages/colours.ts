/** A colour as six hexadecimal digits, `#24508f`. */
export type Colour = string

const readChannels = (colour: Colour): number[] => [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16))

/** Relative luminance (WCAG 2.2). */
function computeLuminance (colour: Colour): number {
  const [r = 0, g = 0, b = 0] = readChannels(colour).map((channel) => {
    const value = channel / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** The contrast ratio of two colours (WCAG 2.2): 1 to 21. */
export function computeContrast (one: Colour, other: Colour): number {
  const [high = 0, low = 0] = [computeLuminance(one), computeLuminance(other)].sort((a, b) => b - a)
  return (high + 0.05) / (low + 0.05)
}

/** @param share the share of `other`, 0 to 1 */
export function mixColours (one: Colour, other: Colour, share: number): Colour {
  const target = readChannels(other)
  const mixed = readChannels(one).map((channel, index) => Math.round(channel + ((target[index] ?? channel) - channel) * share))
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`
}
