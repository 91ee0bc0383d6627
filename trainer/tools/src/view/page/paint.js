'use strict';
// Textures on shapes, as `draw/paint.rs` lays them.

// What a fragment of a shape sees of its texture. Kinds of `Lie`: 0 flat, 1 around, 2 by
// coordinates, 3 cube; shapes: 0 round, 1 capsule, 2 cylinder, 3 box.
const PAINT = /* glsl */`
varying vec3 paintPlace;
varying vec3 paintNormal;
varying vec2 paintCoords;
uniform vec3 paintSize;
uniform vec4 paintValues;
uniform vec3 paintTint;
uniform vec2 paintOrigin;
#if PAINT_LIE == 3
uniform samplerCube paintMap;
vec3 paintSeen() {
  vec3 p = paintPlace / paintSize;
  #if PAINT_SHAPE == 1
  float z = paintPlace.z, h = paintSize.z, r = paintSize.x;
  p.z = clamp(z / h, -1.0, 1.0) + sign(z) * max(abs(z) - h, 0.0) / r;
  #endif
  return texture(paintMap, p * paintValues.xyz).rgb;
}
#else
uniform sampler2D paintMap;
const float PAINT_PI = 3.141592653589793;
vec2 paintAt() {
  #if PAINT_LIE == 0
  return (paintPlace.xy + paintOrigin) * paintValues.xy + paintValues.zw;
  #elif PAINT_LIE == 2
  return paintCoords;
  #else
  vec3 p = paintPlace / paintSize;
  float turn = fract(atan(p.y, p.x) / (2.0 * PAINT_PI));
  #if PAINT_SHAPE == 1
  float z = paintPlace.z, h = paintSize.z, r = paintSize.x;
  float end = 2.0 * asin(clamp((abs(z) - h) / r, 0.0, 1.0)) / PAINT_PI;
  return vec2(turn, z > h ? 1.0 - end : z < -h ? end : 0.5 - 0.5 * z / h);
  #elif PAINT_SHAPE == 2
  return abs(paintNormal.z) > 0.5 ? 0.5 + 0.5 * p.xy : vec2(turn, 0.5 - 0.5 * p.z);
  #elif PAINT_SHAPE == 3
  vec3 n = abs(paintNormal);
  vec2 side = n.z > 0.5 ? p.xy : n.x > 0.5 ? p.yz : p.xz;
  return vec2(0.5 + 0.5 * side.x, 0.5 - 0.5 * side.y);
  #else
  return vec2(turn, 0.5 - asin(clamp(p.z, -1.0, 1.0)) / PAINT_PI);
  #endif
  #endif
}
vec3 paintSeen() {
  vec2 at = paintAt(), dx = dFdx(at), dy = dFdy(at);
  #if PAINT_LIE == 1
  // Not once around: there are seams.
  dx -= round(dx);
  dy -= round(dy);
  #endif
  #if PAINT_LIE != 0
  at *= paintValues.xy; dx *= paintValues.xy; dy *= paintValues.xy;
  #endif
  return textureGrad(paintMap, at, dx, dy).rgb;
}
#endif
`;

const SHAPES = { capsule: 1, cylinder: 2, box: 3 };
const LIES = { flat: 0, around: 1, coords: 2, cube: 3 };

// Pictures of the page as textures. Their bytes are what the file shows, not yet linear light:
// they are mixed and tinted like that, as MuJoCo does.
async function texturesOf({ textures }, blob) {
  const options = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };
  const picture = ([at, size]) => createImageBitmap(new Blob([new Uint8Array(blob, at, size)], { type: 'image/png' }), options);
  return Promise.all(textures.map(async ({ cube, sides }) => {
    const images = await Promise.all(sides.map(picture));
    const six = Array.from({ length: 6 }, (_, i) => images[i % images.length]);
    const texture = cube ? new V.CubeTexture(six) : new V.Texture(images[0]);
    if (!cube) texture.wrapS = texture.wrapT = V.RepeatWrapping;
    texture.colorSpace = '';
    texture.flipY = false;
    texture.generateMipmaps = true;
    texture.minFilter = 1008; // linear, between mipmaps
    texture.anisotropy = 8;
    texture.needsUpdate = true;
    return texture;
  }));
}

// Lets `material` show a texture on a shape of kind and size `s`; returns its uniforms.
function paint(material, s, { texture, tint, lie, values }, textures) {
  const size = s.size ?? [1, 1, 1], [x, y, z] = size;
  const sizes = { sphere: [x, x, x], capsule: [x, x, y], cylinder: [x, x, y], box: size }[s.kind] ?? [1, 1, 1];
  const uniforms = {
    paintMap: { value: textures[texture] },
    paintSize: { value: new V.Vector3(...sizes) },
    paintValues: { value: values },
    paintTint: { value: tint },
    paintOrigin: { value: new V.Vector2() },
  };
  const coords = lie === 'coords';
  material.color.set(0xffffff);
  material.defines = { ...material.defines, PAINT_LIE: LIES[lie], PAINT_SHAPE: SHAPES[s.kind] ?? 0 };
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, uniforms);
    const varyings = 'varying vec3 paintPlace;\nvarying vec3 paintNormal;\nvarying vec2 paintCoords;\n';
    const given = `${coords ? 'attribute vec2 coords;\n' : ''}${varyings}`;
    const set = `paintPlace = position; paintNormal = normal; paintCoords = ${coords ? 'coords' : 'vec2(0.0)'};`;
    shader.vertexShader = given + shader.vertexShader.replace('#include <begin_vertex>', `#include <begin_vertex>\n${set}`);
    const light = 'vec3 paint = paintSeen() * paintTint;\n'
      + 'diffuseColor.rgb = mix(pow((paint + 0.055) / 1.055, vec3(2.4)), paint / 12.92, vec3(lessThanEqual(paint, vec3(0.04045))));';
    shader.fragmentShader = PAINT + shader.fragmentShader.replace('#include <map_fragment>', light);
  };
  material.customProgramCacheKey = () => `${lie} ${s.kind}`;
  return uniforms;
}
