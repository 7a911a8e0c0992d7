import type { Colour } from './colours.ts'

/** The characters of a logo's data URL up to which it is also the icon in the browser's tab. Every page contains it twice then. */
const LIMIT = 16 * 1024

/** The icon of a service without a small logo: a person in white on the colour of the buttons, which has contrast to white. */
function draw (background: Colour): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${background}"/><g fill="#ffffff"><circle cx="16" cy="12" r="5"/><path d="M7 26a9 8 0 0 1 18 0z"/></g></svg>`
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
}

/** Chooses the icon of the pages, as a data URL with base64. */
export function chooseIcon (logo: string | undefined, background: Colour): string {
  return logo !== undefined && logo.length <= LIMIT ? logo : draw(background)
}
