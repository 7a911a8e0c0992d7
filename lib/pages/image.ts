import { readFileSync, statSync } from 'node:fs'
import { readCode, readMessage } from '../failure.ts'

/** The maximum size of a logo in bytes. It is part of every page, and of every mail. */
export const MOST_IMAGE = 64 * 1024

type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'image/svg+xml'

export interface Image {
  type: ImageType
  content: Buffer
}

/**
 * The first bytes of each accepted type. Browsers run no scripts and load nothing for an SVG that is shown as an image. The pattern of a comment
 * matches no longer text than the comment: several comments would be divided in so many ways that the match takes years.
 */
const TYPES: [type: ImageType, start: RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['image/svg+xml', /^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->)[^])*-->\s*)*(<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/]
]

function readContent (image: string): Buffer {
  if (!image.startsWith('data:')) {
    if (statSync(image).size > MOST_IMAGE) throw new Error(`is larger than ${MOST_IMAGE} bytes`)
    return readFileSync(image)
  }
  const [, text] = /^data:[\w/+.-]+;base64,([\w+/]+=*)$/.exec(image) ?? []
  if (text === undefined) throw new Error('is not a data URL with base64')
  return Buffer.from(text, 'base64')
}

/**
 * An image by its content, whatever its sender says of the type.
 * @throws Error with the reason
 */
export function recognizeImage (content: Buffer): Image {
  if (content.length > MOST_IMAGE) throw new Error(`is larger than ${MOST_IMAGE} bytes`)
  const start = content.toString('latin1', 0, 4096)
  const type = TYPES.find(([, pattern]) => pattern.test(start))?.[0]
  if (type === undefined) throw new Error('is not a PNG, JPEG, GIF, WebP or SVG image')
  return { type, content }
}

/**
 * Reads an image. The content determines the type.
 * @param image the path of a file, or a data URL with base64
 * @throws Error that names the option
 */
export function readImage (option: string, image: string): Image {
  try {
    return recognizeImage(readContent(image))
  } catch (cause) {
    const code = readCode(cause)
    throw new Error(`option ${option}: ${code === undefined ? readMessage(cause) : `cannot be read (${code})`}`, { cause })
  }
}

/** The width and height in the frame header of a JPEG (ITU T.81, B.2.2). */
function measureJpeg (content: Buffer): [number, number] | undefined {
  for (let at = 2; at + 9 < content.length && content[at] === 0xff; at += 2 + content.readUInt16BE(at + 2)) {
    const marker = content.readUInt8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return [content.readUInt16BE(at + 7), content.readUInt16BE(at + 5)]
  }
}

/** The width and height in pixels. Undefined for an SVG or WebP image, and for a damaged one. */
export function measureImage ({ type, content }: Image): { width: number, height: number } | undefined {
  const isWhole = content.length >= 24
  const size = !isWhole
    ? undefined
    : type === 'image/png'
      ? [content.readUInt32BE(16), content.readUInt32BE(20)]
      : type === 'image/gif'
        ? [content.readUInt16LE(6), content.readUInt16LE(8)]
        : type === 'image/jpeg' ? measureJpeg(content) : undefined
  const [width = 0, height = 0] = size ?? []
  return width > 0 && height > 0 ? { width, height } : undefined
}
